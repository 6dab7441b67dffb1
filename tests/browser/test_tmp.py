import cProfile, pstats, threading, time, resource, os
def cpu(): 
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime
def test_t(bobs, workspace):
    import subprocess
    bobs.go("agents/")
    a=time.time(); c=cpu()
    def chrom():
        out=subprocess.run("ps -eo pid,ppid,cputimes,args | grep -i 'chrom\\|driver/node' | grep -v grep",shell=True,capture_output=True,text=True).stdout
        return {l.split(None,3)[0]:(int(l.split(None,3)[2]), l.split(None,3)[3][:60]+(' '+l.split('--type=')[1].split()[0] if '--type=' in l else '')) for l in out.splitlines()}
    b=chrom()
    for i in range(60): bobs.go("agents/new/" if i%2 else "agents/")
    e=chrom()
    print("wall",time.time()-a,"python cpu",cpu()-c)
    for k in e: print(e[k][0]-b.get(k,(0,))[0], e[k][1])
